from studies.scheduling.run import BEGIN, END, PARTS, with_section

FIRST, SECOND = (title for title, _ in list(PARTS.values())[:2])


def test_a_section_is_replaced_in_the_order_of_parts_and_what_is_of_no_part_is_dropped() -> None:
    page = f"before\n{BEGIN}### {SECOND}\n\nold\n\n### Of no part\n\nstale\n\n{END}\nafter\n"
    page = with_section(page, FIRST, "new\n")
    assert page == f"before\n{BEGIN}### {FIRST}\n\nnew\n\n### {SECOND}\n\nold\n\n{END}\nafter\n"
    assert with_section(page, SECOND, "newer") == page.replace("old", "newer")
