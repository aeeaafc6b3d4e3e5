"""What every page needs: the layout, forms, problems and links."""
