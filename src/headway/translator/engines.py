"""The choice of the engine: CTranslate2 on CPU where it can do what is asked, else torch, unless the user chose one."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, get_args

from headway.decoding import Searcher
from headway.decoding.options import ABILITIES
from headway.devices import (
    EngineName,
    TranslatingPrecision,
    emulates_bf16,
    keep_large_allocations,
    need_torch,
    translating_dtype,
)
from headway.errors import UserError
from headway.storage import AnyModel, ModelDirectory
from headway.threads import current_threads
from headway.translator.reading import PlainReader, Reader, TorchReader

if TYPE_CHECKING:
    from headway.storage import StoredModel


class Engines:
    """The searchers of one model: that of its engine and, where `auto` has chosen CTranslate2, torch's for what that
    can't do. torch and its copy of the model are loaded when they are first needed."""

    def __init__(
        self,
        model: AnyModel,
        device: str,
        precision: TranslatingPrecision,
        engine: EngineName,
        ensemble: Sequence[AnyModel] = (),
    ) -> None:
        """Raises UserError."""
        for kind, value, known in (
            ("precision", precision, get_args(TranslatingPrecision)),
            ("engine", engine, get_args(EngineName)),
        ):
            if value not in known:
                raise UserError(f"{kind} {value!r} is unknown; there are {', '.join(known)}")
        if ensemble and precision == "int8":
            raise UserError(
                "precision int8: CTranslate2 alone has it, and has no ensembles; use fp32, bf16, fp16 or auto"
            )
        self._model, self._device, self._ensemble = model, device, ensemble
        self._precision: TranslatingPrecision = precision
        self._is_auto = engine == "auto"
        self._threads = current_threads()
        self._lock = threading.RLock()
        self._told: set[str] = set()
        self.name: EngineName = self._choose() if self._is_auto else engine
        """`torch` or `ctranslate2`."""
        if ensemble:
            self.check("ensemble")
        self.own = self._by_torch() if self.name == "torch" else self._by_ctranslate2()
        """The searcher of the engine."""

    @property
    def precision(self) -> str:
        """fp32, bf16, fp16 or int8, of the engine."""
        if self.name == "ctranslate2":
            return self._ctranslate2_precision()
        import torch

        names = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
        return names[translating_dtype(self._precision, torch.device(self._device))]

    def stop(self) -> None:
        """Ends searches of CTranslate2 that are under way in other threads, with KeyboardInterrupt."""
        from headway.decoding.ctranslate2_searcher import CTranslate2Searcher

        if isinstance(self.own, CTranslate2Searcher):
            self.own.stop()

    @property
    def stored(self) -> StoredModel:
        """The model in torch, on the device. Raises UserError where torch isn't installed."""
        with self._lock:
            return self._stored

    @cached_property
    def _stored(self) -> StoredModel:
        need_torch("engine torch")
        is_new = "torch" not in sys.modules
        import torch

        if is_new:  # CTranslate2, which shares its OpenMP, has set another number
            torch.set_num_threads(self._threads)
        return self._on_device(self._model)

    @cached_property
    def reader(self) -> Reader:
        """Reads given translations: with torch where that is the engine, else with numpy."""
        if self.name == "torch":
            return TorchReader(self.stored.model)
        return PlainReader(self._model.config, self._model.weights())

    def check(self, ability: str) -> None:
        """Raises UserError for one of ABILITIES that the engine lacks, unless torch can stand in for it."""
        what, engines, *_ = ABILITIES[ability]
        if self.name not in engines:
            if not self._is_auto:
                raise UserError(f"{what} needs engine torch or auto")
            need_torch(what)

    def able(self, *abilities: str) -> Searcher:
        """The searcher for some of ABILITIES: the engine's or torch's. Raises UserError as `check`."""
        lacking = [one for one in abilities if self.name not in ABILITIES[one].engines]
        for ability in lacking:
            self.check(ability)
            if ability not in self._told:
                self._told.add(ability)
                self._tell(ABILITIES[ability].what)
        return self._by_torch() if lacking else self.own

    def _tell(self, what: str) -> None:
        """Tells that torch stands in for CTranslate2. what: needs it. Raises UserError where it isn't installed."""
        need_torch(what)
        logging.getLogger(__name__).warning("notice: %s needs torch, which is slower than CTranslate2", what)

    def for_inspecting(self) -> Searcher:
        """The engine's searcher if the user chose the engine, else torch's, whose beams can be looked at. Raises
        UserError where torch isn't installed."""
        need_torch(ABILITIES["inspect"].what)
        return self._by_torch() if self._is_auto else self.own

    def _choose(self) -> EngineName:
        if self._device != "cpu":
            return "torch"
        if self._ensemble:
            self._tell(ABILITIES["ensemble"].what)
            return "torch"
        from headway.decoding.ctranslate2_model import why_not
        from headway.decoding.ctranslate2_searcher import can_compute

        if reason := why_not(self._model.config):
            self._tell(f"this model ({reason})")
        elif self._precision != "int8" and not can_compute(self._ctranslate2_precision(), self._device):
            self._tell(f"precision {self._precision} on this CPU")
        else:
            return "ctranslate2"
        return "torch"

    def _ctranslate2_precision(self) -> str:
        """Precision with CTranslate2. `auto`: on cuda bf16, fp16 or fp32, the first that it has there; on CPU int8 if
        the model is as good in it, else fp32."""
        if self._precision != "auto":
            return self._precision
        from headway.decoding.ctranslate2_searcher import can_compute

        if self._device != "cpu":
            return next((one for one in ("bf16", "fp16") if can_compute(one, self._device)), "fp32")
        int8 = self._model.int8
        return "int8" if int8 and int8.accepted and can_compute("int8", self._device) else "fp32"

    def _by_ctranslate2(self) -> Searcher:
        from headway.decoding.ctranslate2_searcher import CTranslate2Searcher

        return CTranslate2Searcher(self._model, self._device, self._ctranslate2_precision(), self._threads)

    def _by_torch(self) -> Searcher:
        with self._lock:
            searcher = self._torch
        import torch

        torch.set_num_threads(current_threads())  # of this thread
        return searcher

    @cached_property
    def _torch(self) -> Searcher:
        stored = self._stored
        import torch

        from headway.decoding import EnsembleEngine, TorchEngine, TorchSearcher
        from headway.decoding.torch_searcher import FreedMemory

        device = torch.device(self._device)
        keep_large_allocations(device)
        only_ctranslate2 = self._precision == "int8" and self.name != "torch"
        dtype = translating_dtype("auto" if only_ctranslate2 else self._precision, device)
        if emulates_bf16(device, dtype):
            logging.getLogger(__name__).warning(
                "headway: this device emulates bf16 slowly; use precision auto, which is fp16 here"
            )
        models = [one.model for one in (stored, *map(self._on_device, self._ensemble))]
        engines = [TorchEngine(model, stored.target_tokenizer.never_generated, dtype) for model in models]
        return TorchSearcher(
            EnsembleEngine(engines) if self._ensemble else engines[0],
            stored.config.pad_id,
            device,
            after_batch=FreedMemory().bound,
        )

    def _on_device(self, model: AnyModel) -> StoredModel:
        from headway.storage.stored_model import to_torch

        stored = to_torch(model) if isinstance(model, ModelDirectory) else model
        stored.model.to(self._device).eval()
        return stored
