"""Code that every part of the product uses. It knows no request and no flow."""
