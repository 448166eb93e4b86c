"""Operations on lists, dicts, objects, strings and views."""
