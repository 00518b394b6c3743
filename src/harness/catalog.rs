//! Finds manifests: built in, then the folder `harnesses/`, then `--harness path.yaml`; the last one wins by name.
