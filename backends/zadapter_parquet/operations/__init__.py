"""Operations on a table: registration, loads, moves, publishing, restore and vacuum."""
