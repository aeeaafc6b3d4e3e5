module latchkey.example/family

go 1.22

require (
	github.com/google/uuid v1.3.0
	github.com/supabase-community/gotrue-go v1.2.0
)

require github.com/tomnomnom/linkheader v0.0.0-20180905144013-02ca5825eb80 // indirect
