"""Importing users from files, such as the exports of other products, and exporting them."""
