package study

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/study/store"
	"github.com/noether-ml/noether/scores"
)

// stored returns a store of a run folder: cells or states.
func stored(t *testing.T, dir, sub string) *store.Store {
	t.Helper()
	s := store.New(filepath.Join(dir, sub), store.Options{Verify: true})
	if err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	return s
}

// storedKeys returns the keys in a store of a run folder, sorted.
func storedKeys(t *testing.T, dir, sub string) []string {
	t.Helper()
	keys := stored(t, dir, sub).Keys()
	slices.Sort(keys)
	return keys
}

// storedItem returns a record of a run folder.
func storedItem(t *testing.T, dir, sub, key string) *store.Item {
	t.Helper()
	it, err := stored(t, dir, sub).Get(key)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// storedCell returns the cell of a key.
func storedCell(t *testing.T, dir, key string) scores.Cell {
	t.Helper()
	c, err := scores.ParseCell(storedItem(t, dir, "cells", key).Body)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// storeRecord writes a record into a new log of a run folder.
func storeRecord(t *testing.T, dir, sub string, r store.Record) {
	t.Helper()
	s := stored(t, dir, sub)
	if err := s.Put(r); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// removeRecord removes a record of a run folder.
func removeRecord(t *testing.T, dir, sub, key string) {
	t.Helper()
	s := stored(t, dir, sub)
	s.Drop(key)
	if err := s.Compact(nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// damageRecord flips a bit of a text in the logs of a run folder.
func damageRecord(t *testing.T, dir, sub, text string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, sub, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if i := strings.Index(string(raw), text); i >= 0 {
			raw[i+len(text)/2] ^= 1
			if err := os.WriteFile(file, raw, 0o666); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no log in %v has %.60q", files, text)
}
