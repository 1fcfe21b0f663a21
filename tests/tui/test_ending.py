"""An app may be asked to end at any time, also once it has ended."""

import asyncio

from evaltui.tui.ending import EndingApp


def test_being_asked_to_end_once_it_has_ended_does_nothing():
    complaints = []

    async def ended():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        app = EndingApp()
        async with app.run_test():
            app.exit()
        app.terminal_gone()
        app._interrupts.listen_again()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return app

    app = asyncio.run(ended())
    app.terminal_gone()
    app._interrupts.listen_again()
    assert complaints == []
