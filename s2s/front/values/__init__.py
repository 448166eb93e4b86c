"""Operations on lists, dicts, objects, strings and views, as the program sees them."""
