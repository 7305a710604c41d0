"""Fitted selectors in files, without pickle; their predictors as ONNX graphs."""

from ngp.persistence.export import export_onnx
from ngp.persistence.saving import load, save

__all__ = ["export_onnx", "load", "save"]
