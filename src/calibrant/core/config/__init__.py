"""TOML and frozen dataclasses: conversion, overrides, inheritance, trust in code, errors that quote the line."""
