"""Sessions: issuing tokens, the token response, and the session of a browser on our pages."""
