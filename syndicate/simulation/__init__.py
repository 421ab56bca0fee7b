"""What a simulation is made of that needs no relay: its choices, its clock, its processes and disks, its history."""
