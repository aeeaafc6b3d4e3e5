"""What an operator runs: commands, processes, the doctor, backups, transfer, the test server."""
