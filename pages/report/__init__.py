"""Reports: one file of HTML or Markdown made of a document of `venire.reporting`."""
