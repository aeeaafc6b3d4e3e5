"""Common code of all pages for administrators."""
