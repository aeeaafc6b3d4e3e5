module latchkey.example/generated

go 1.25.0
