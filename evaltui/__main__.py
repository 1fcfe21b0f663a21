from evaltui.cli import main

main()
