"""Cannot be imported."""

import no_such_library

root_agent = no_such_library.Agent()
