"""The documentation as HTML: the guides in docs/, and the HTTP API from openapi.yaml."""
