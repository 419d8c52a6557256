"""Code that every room shares. numpy only: no torch here, and scipy and polars only when used."""
