"""Users from and to files, such as the exports of other products."""
