from indlet.cli import main

main()
