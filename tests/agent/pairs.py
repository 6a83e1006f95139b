"""Pairs of short texts as an agent would remember them: who says the same as whom.

Written by hand. `RETOUCHED` differ in case, punctuation, spelling or a small word and say the same; `REWORDED` say
the same in other words; `CHANGED` differ in a word or its place and say something else; `UNRELATED` have nothing to do
with each other.
"""

from __future__ import annotations

Pairs = list[tuple[str, str]]


def _read(block: str) -> Pairs:
    lines = [line.strip() for line in block.strip().splitlines()]
    return [(left.strip(), right.strip()) for left, right in (line.split("|") for line in lines)]


RETOUCHED = _read("""
    The user prefers dark mode in every editor.|the user prefers dark mode in every editor
    Deploys happen on Tuesdays and Thursdays.|Deploys happen on Tuesdays and on Thursdays.
    The staging database runs PostgreSQL 15.|Staging database runs PostgreSQL 15
    Anna's birthday is on 12 March.|Anna's birthday is on the 12 March!
    The login page fails with a 500 when the password is empty.|Login page fails with a 500 when the password is empty
    Use tabs, not spaces, in Makefiles.|Use tabs not spaces in Makefiles.
    The customer's name is Maria Lopez.|The customers name is Maria Lopez.
    We decided to drop support for Python 3.9.|We decided to drop support for Python 3.9!!
    The API limit is 60 requests per minute.|API limit is 60 requests per minute
    He is allergic to peanuts.|He's allergic to peanuts.
    The meeting was moved to Friday at 10:00.|The meeting was moved to friday at 10:00
    Run the linter before every commit.|Please run the linter before every commit.
    The build takes about twelve minutes.|The build takes about twelve minutes...
    Colour of the logo must stay blue.|Color of the logo must stay blue.
    She lives in Berlin and works in Potsdam.|She lives in Berlin, and works in Potsdam.
    The cache is cleared every night at 3 am.|The cache is cleared every night at 3 AM.
    User wants answers in French.|The user wants answers in French.
    Never push to main directly.|NEVER push to main directly!
    The report is due at the end of June.|Report is due at the end of June
    Backups are kept for thirty days.|Backups are kept for thirty days
    The search index is rebuilt after each import.|the search index is rebuilt after each import
    Ticket 4711 is blocked by the design team.|Ticket 4711 is blocked by design team.
    The car needs new tyres before winter.|The car needs new tires before winter.
    Tests must not touch the network.|Tests must not touch the network, please.
    His favourite tea is Earl Grey.|His favorite tea is Earl Grey.
    The office key is with the concierge.|The office key is with the concierge
    Error messages are written in English.|Error messages are written in english.
    The parser fails on trailing commas.|Parser fails on trailing commas.
    The project uses semantic versioning.|The project uses Semantic Versioning.
    Invoices are sent on the first of each month.|Invoices are sent on the first of every month.
    The old laptop has 8 GB of memory.|The old laptop has 8GB of memory.
    Our train leaves from platform nine.|Our train leaves from platform nine!
    The flag is called --dry-run.|Flag is called --dry-run
    He asked for a summary of the contract.|He asked for a summary of the contract .
    The feature is behind a toggle.|The feature's behind a toggle.
    Photos are stored in the shared folder.|Photos are stored in the  shared folder.
    The dog's name is Bruno.|Dogs name is Bruno
    Mail about outages goes to the night shift.|Emails about outages go to the night shift.
    The garden is watered automatically.|The garden is watered automatically
    We use feature branches and squash merges.|We use feature branches and squash-merges.
""")

REWORDED = _read("""
    The user prefers dark mode in every editor.|All of the person's text editors should have a black background.
    Deploys happen on Tuesdays and Thursdays.|We ship new versions twice a week, on the second and fourth working day.
    Anna's birthday is on 12 March.|Anna was born on the twelfth of March.
    The login page returns a 500 error when the password is empty.|Signing in without a password crashes the server.
    We decided to drop support for Python 3.9.|Version 3.9 of the language will no longer be supported.
    The API limit is 60 requests per minute.|You may call the service once a second at most.
    He is allergic to peanuts.|Nuts make him ill.
    The meeting was moved to Friday at 10:00.|Our appointment now takes place on Friday morning at ten.
    Run the linter before every commit.|Check the style of the code prior to committing.
    The build takes about twelve minutes.|Compiling needs a bit less than a quarter of an hour.
    She lives in Berlin and works in Potsdam.|Her flat is in Berlin but her office is in Potsdam.
    The cache is cleared every night at 3 am.|Nightly, cached data is thrown away.
    User wants answers in French.|Reply to this person in the language of France.
    Never push to main directly.|Changes to the default branch go through pull requests only.
    The report is due at the end of June.|We must hand in the document before July begins.
    Backups are kept for thirty days.|Copies of the data are deleted after a month.
    Ticket 4711 is blocked by the design team.|We wait for the designers before we can go on with 4711.
    The car needs new tyres before winter.|Put other wheels on the vehicle before it snows.
    Tests must not touch the network.|The suite has to run offline.
    His favourite tea is Earl Grey.|What he likes best to drink is black tea with bergamot.
    The office key is with the concierge.|Ask the doorman if you need to get into the office.
    The parser fails on trailing commas.|A comma at the end of a list cannot be read.
    Invoices are sent on the first of each month.|Bills go out monthly.
    The old laptop has 8 GB of memory.|There are eight gigabytes of RAM in the previous notebook.
    Our train leaves from platform nine.|We have to go to track 9 for departure.
    He asked for a summary of the contract.|He wants the agreement in a few sentences.
    The feature is behind a toggle.|The new function must be switched on first.
    Photos are stored in the shared folder.|You find the pictures in the directory that everyone can read.
    The dog's name is Bruno.|They call their dog Bruno.
    Mail about outages goes to the night shift.|The team on duty at night gets messages when something is down.
    The garden is watered automatically.|Sprinklers take care of the plants.
    The disk is almost full.|There is hardly any space left on the drive.
    She speaks Spanish fluently.|Her Spanish is excellent.
    The server was restarted after the update.|They rebooted the machine once the patches were in.
    The shop closes at eight in the evening.|You can buy there until 8 pm.
    He quit smoking last year.|Since last year he has had no cigarettes.
    The function returns nothing on failure.|If it fails, the result is None.
    The flight was cancelled because of fog.|Bad visibility kept the plane on the ground.
    The kitchen will be painted green.|Green is the colour we chose for the kitchen walls.
    Passwords are hashed with argon2.|Argon2 protects the stored passwords.
""")

CHANGED = _read("""
    The staging database runs PostgreSQL 15.|The staging database runs PostgreSQL 16.
    The API limit is 60 requests per minute.|The API limit is 600 requests per minute.
    Anna's birthday is on 12 March.|Anna's birthday is on 21 March.
    Alice owes Bob twenty euros.|Bob owes Alice twenty euros.
    He is allergic to peanuts.|He is not allergic to peanuts.
    The user prefers dark mode in every editor.|The user prefers light mode in every editor.
    Deploys happen on Tuesdays.|Deploys happen on Thursdays.
    The meeting was moved to Friday at 10:00.|The meeting was moved to Friday at 11:00.
    Use tabs, not spaces, in Makefiles.|Use spaces, not tabs, in Makefiles.
    The build takes about twelve minutes.|The build takes about twelve hours.
    She lives in Berlin and works in Potsdam.|She lives in Potsdam and works in Berlin.
    The cache is cleared every night at 3 am.|The cache is cleared every night at 3 pm.
    User wants answers in French.|User wants answers in Spanish.
    The customer's name is Maria Lopez.|The customer's name is Mario Lopez.
    Never push to main directly.|Always push to main directly.
    The report is due at the end of June.|The report is due at the end of July.
    Backups are kept for thirty days.|Backups are kept for thirteen days.
    Ticket 4711 is blocked by the design team.|Ticket 4712 is blocked by the design team.
    Tests must not touch the network.|Tests must touch the network.
    The office key is with the concierge.|The office key was with the concierge.
    The parser fails on trailing commas.|The parser no longer fails on trailing commas.
    The old laptop has 8 GB of memory.|The new laptop has 8 GB of memory.
    Our train leaves from platform nine.|Our train leaves from platform five.
    The flag is called --dry-run.|The flag is called --no-dry-run.
    The feature is behind a toggle.|The feature is not behind a toggle.
    Photos are stored in the shared folder.|Photos are stored in the private folder.
    The dog's name is Bruno.|The cat's name is Bruno.
    Version 2.1 fixed the memory leak.|Version 2.1 caused the memory leak.
    The first service calls the second.|The second service calls the first.
    The test failed before the fix.|The test failed after the fix.
    The server listens on port 8080.|The server listens on port 8081.
    The invoice was paid on 3 May.|The invoice was due on 3 May.
    Lea reviewed the change that Tom wrote.|Tom reviewed the change that Lea wrote.
    Timeout is 30 seconds.|Timeout is 30 minutes.
    The bug appears only on Windows.|The bug appears only on Linux.
    The price rose from 10 to 12 euros.|The price rose from 12 to 10 euros.
    He can work on Mondays.|He cannot work on Mondays.
    The file is read before it is written.|The file is written before it is read.
    The door code is 4482.|The door code is 4428.
    Increase the batch size to 64.|Decrease the batch size to 64.
""")

UNRELATED: Pairs = [
    (left, REWORDED[(i + 7) % len(REWORDED)][1]) for i, (left, _) in enumerate(REWORDED)
]
