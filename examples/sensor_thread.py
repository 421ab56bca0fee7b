"""A plain thread feeds a dataspace, and a timer says when it has fallen silent.

Libraries that know nothing of actors call back in threads of their own.  ``enter_from_thread`` takes a function from
there into a facet, where it runs as a turn like any other: the actor's variables need no lock.

    $ python examples/sensor_thread.py
    there is a sensor
    it is 19.5 degrees
    it is 20.0 degrees
    it is 20.5 degrees
    the sensor has fallen silent
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from syndicate import (
    ANY,
    Field,
    Ref,
    after,
    assert_,
    capture,
    current_facet,
    dataspace,
    during,
    field,
    on_asserted,
    on_stop,
    record,
    run,
    spawn,
    stop_actor,
)
from syndicate.errors import FacetEnded

PATIENCE = 0.5
"""Seconds for which a reading holds."""


@record
class Temperature:
    """Asserted while it is not too old."""

    celsius: float


def sensor(call_back: Callable[[float], None]) -> None:
    """What some library does in a thread of its own."""
    for celsius in (19.5, 20.0, 20.5):
        call_back(celsius)
        time.sleep(0.05)


def thermometer(ds: Ref) -> None:
    """Assert what the sensor says, and end when it says nothing any more."""
    here = current_facet()
    latest: Field[Temperature | None] = field(None, name="latest")
    alarm = after(PATIENCE, stop_actor)
    assert_(ds, lambda: latest.value)  # None: nothing is asserted

    def measured(celsius: float) -> None:
        nonlocal alarm
        alarm.cancel()
        alarm = after(PATIENCE, stop_actor)
        latest.value = Temperature(celsius)

    def call_back(celsius: float) -> None:
        with suppress(FacetEnded):  # the library goes on a little longer than we do
            here.enter_from_thread(lambda: measured(celsius))

    threading.Thread(target=sensor, args=[call_back]).start()


def reader(ds: Ref) -> None:
    """Print the temperature."""

    @during(ds, Temperature(ANY))
    def there() -> None:
        print("there is a sensor")
        on_stop(lambda: print("the sensor has fallen silent"))

    @on_asserted(ds, Temperature(capture()))
    def new(celsius: float) -> None:
        print(f"it is {celsius} degrees")


def boot() -> None:
    """Begin to measure."""
    ds = dataspace()
    spawn(reader, ds)
    spawn(thermometer, ds)


if __name__ == "__main__":
    run(boot)
