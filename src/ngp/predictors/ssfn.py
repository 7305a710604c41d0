"""SSFN as a predictor: one layer of random ReLU units, all candidates of a step scored together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.compute.ridge import solve_output_layer
from ngp.compute.scoring import LayerTask, linear_state, padded_width, score_chunk
from ngp.predictors.base import ColumnSets, Losses
from ngp.problem import Problem
from ngp.validation import Round

__all__ = ["SSFN"]

# Numbers of the rows' predictions that one task returns: enough for its overhead not to count, few enough for memory.
CHUNK_NUMBERS = 2**18


class SSFN(BaseEstimator):  # type: ignore[misc]
    def __init__(
        self,
        *,
        n_units: int = 100,
        n_draws: int = 4,
        ridge: float = 1.0,
        linear_ridge: float = 1.0,
        norm_bound: float | None = None,
        bias: bool = True,
        standardize: bool = True,
        unit_norm: bool = False,
        redraw: bool = False,
        refit_units: int | str = "auto",
        wscale=1.0, bscale=1.0, dist="normal", spow=0.5,
    ) -> None:
        self.n_units = n_units
        self.n_draws = n_draws
        self.ridge = ridge
        self.linear_ridge = linear_ridge
        self.norm_bound = norm_bound
        self.bias = bias
        self.standardize = standardize
        self.unit_norm = unit_norm
        self.redraw = redraw
        self.refit_units = refit_units
        self.wscale=wscale; self.bscale=bscale; self.dist=dist; self.spow=spow

    losses = frozenset({"squared_error", "cross_entropy", "hinge"})

    def bind(self, problem: Problem, *, random_state: int, n_jobs: int | None = None, dtype: str = "float32"):
        return SSFNScorer(self, problem, random_state, n_jobs, dtype)


def _weights(seed, draw, n, H, dist):
    rng=np.random.Generator(np.random.Philox(key=[seed, draw//2 if dist=="anti" else draw]))
    if dist=="anti": return rng.standard_normal((n,H))*(-1)**draw
    if dist=="anti2":
        W=rng.standard_normal((n,H//2)); return np.hstack([W,-W])
    return rng.standard_normal((n,H)) if dist=="normal" else rng.uniform(-1,1,(n,H))

def _bias(seed, draw, H, dist):
    rng=np.random.Generator(np.random.Philox(key=[seed, draw+(1<<32)]))
    if dist=="anti2":
        b=rng.standard_normal(H//2); return np.concatenate([b,-b]) if draw%2 else np.concatenate([b,b])
    if dist=="anti":
        rng=np.random.Generator(np.random.Philox(key=[seed, draw//2+(1<<32)])); return rng.standard_normal(H)*(-1)**draw
    return rng.standard_normal(H) if dist!="uniform" else rng.uniform(-1,1,H)


class SSFNScorer:
    def __init__(self, config, problem, random_state, n_jobs, dtype):
        self.config=config; self.problem=problem; self.seed=random_state; self.n_jobs=n_jobs; self.dtype=np.dtype(dtype)
        T=problem.targets; 
        c=config
        fitw=problem.weights.copy(); fitw[problem.n_fit:]=0
        self.tmean=np.average(T,axis=0,weights=fitw) if c.bias else np.zeros(T.shape[1])
        self.tscale=np.sqrt(np.average((T-self.tmean)**2,axis=0,weights=fitw).mean()) if c.standardize else 1.0
        self.T=(T-self.tmean)/(self.tscale or 1)

    def columns(self, cols, rows):
        return self.problem.standardized(cols, rows) if self.config.standardize else self.problem.columns(cols, rows)

    def add_losses(self, selected, candidates):
        out=np.empty((len(candidates), len(self.problem.part_weights)))
        sizes=candidates.sizes
        for m in np.unique(sizes):
            members=np.flatnonzero(sizes==m)
            out[members]=self._equal_sizes(selected, candidates.columns[candidates.bounds[members][:,None]+np.arange(m)])
        return Losses(out, self.problem.part_weights)

    def _task(self, fold: Round, selected, m):
        c=self.config; k=len(selected); H=c.n_units
        XS=self.columns(selected, fold.rows)
        w=self.problem.weights[fold.rows]; T=self.T[fold.rows]
        width=padded_width(H, self.dtype)
        base=np.zeros((c.n_draws,len(fold.rows),width),self.dtype); slots=np.zeros((c.n_draws,m,width),self.dtype)
        for d in range(c.n_draws):
            R=_weights(self.seed,d,k+m,H,c.dist)*c.wscale
            if not c.unit_norm: R=R/(k+m)**c.spow
            b=_bias(self.seed,d,H,c.dist)*c.bscale if c.bias else 0.
            base[d,:,:H]=XS.T@R[:k]+b
            slots[d,:,:H]=R[k:]
        lin=linear_state(XS,T,w,fold.segments,ridge=c.linear_ridge,centred=c.bias)
        return LayerTask(fold.segments,w,T.astype(self.dtype),base,slots,lin,H,c.bias,c.unit_norm,c.ridge,c.linear_ridge,c.norm_bound or 0.)

    def _equal_sizes(self, selected, sets):
        parts=[]
        n,m=sets.shape
        rounds=self.problem.rounds
        tasks=[self._task(f, selected, m) for f in rounds]
        chunk=64
        def work(start):
            s=sets[start:start+chunk]; res=[]
            for f,t in zip(rounds,tasks):
                X=self.columns(s.ravel(), f.rows).reshape(len(s),m,-1)
                P=score_chunk(t,X)
                P=P.astype(float)*self.tscale+self.tmean
                res.append(f.part_losses(self.problem.row_losses(P,f.rows), self.problem.weights))
            return np.concatenate(res,axis=1)
        return np.concatenate(Parallel(n_jobs=self.n_jobs,prefer="threads")(delayed(work)(s) for s in range(0,n,chunk)))
