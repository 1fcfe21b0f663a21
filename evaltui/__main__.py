from evaltui.start import main

main()
