package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/study/store"
)

// storedCells returns the store of the cells of a run folder.
func storedCells(t *testing.T, run string) *store.Store {
	t.Helper()
	s := store.New(filepath.Join(run, "cells"), store.Options{})
	if err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// cellKeys returns the keys of the cells of a run folder, sorted.
func cellKeys(t *testing.T, run string) []string {
	t.Helper()
	return slices.Sorted(slices.Values(storedCells(t, run).Keys()))
}

// removeCells removes cells from a run folder.
func removeCells(t *testing.T, run string, keys ...string) {
	t.Helper()
	s := storedCells(t, run)
	s.Drop(keys...)
	if err := s.Compact(nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
