"""Sessions: what is issued, the token response, and the session of a browser on our pages."""
