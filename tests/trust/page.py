def page(numbers: dict) -> str:
    return ""
