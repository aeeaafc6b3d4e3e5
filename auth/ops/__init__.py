"""Programs for operators: commands, processes, the doctor, backups, transfer, the test server."""
