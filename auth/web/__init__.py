"""The steps that every request passes: edge, guard, limits, input, errors, paging, pages."""
