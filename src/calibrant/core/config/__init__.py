"""TOML and frozen dataclasses: conversion, overrides, inheritance, trust in code, quoting errors."""
