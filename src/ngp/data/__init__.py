"""The data of a pursuit: columns, groups, targets, folds, losses."""
