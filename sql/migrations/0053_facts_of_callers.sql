-- Usable from 0052
-- Only functions are new.
SELECT;
