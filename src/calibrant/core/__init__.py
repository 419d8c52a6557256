"""What every room shares. numpy only: nothing here loads torch, and scipy and polars only when used."""
