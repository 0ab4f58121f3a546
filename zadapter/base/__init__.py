"""What every package needs: names, sizes, ranks, locations, interrupts, phases."""
