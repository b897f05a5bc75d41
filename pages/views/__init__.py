"""What each page shows: from the store's rows and the documents of status, board and audit to a template's values."""
