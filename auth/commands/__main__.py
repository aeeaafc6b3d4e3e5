from auth.commands import main

main()
