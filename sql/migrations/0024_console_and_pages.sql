-- A function has changed: record_acts keeps the user of the machine who ran a command.
SELECT;
