"""What an operator runs: commands, processes, the doctor, backups."""
