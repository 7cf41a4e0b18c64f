package studytest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/study/store"
	"github.com/noether-ml/noether/scores"
)

// Stored returns a store of a run folder: cells or states.
func Stored(t *testing.T, dir, sub string) *store.Store {
	t.Helper()
	s := store.New(filepath.Join(dir, sub), store.Options{Verify: true})
	if err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	return s
}

// StoredKeys returns the keys in a store of a run folder, sorted.
func StoredKeys(t *testing.T, dir, sub string) []string {
	t.Helper()
	keys := Stored(t, dir, sub).Keys()
	slices.Sort(keys)
	return keys
}

// StoredItem returns a record of a run folder.
func StoredItem(t *testing.T, dir, sub, key string) *store.Item {
	t.Helper()
	it, err := Stored(t, dir, sub).Get(key)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// StoredCell returns the cell of a key.
func StoredCell(t *testing.T, dir, key string) scores.Cell {
	t.Helper()
	c, err := scores.ParseCell(StoredItem(t, dir, "cells", key).Body)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// PutRecord writes a record into a new log of a run folder.
func PutRecord(t *testing.T, dir, sub string, r store.Record) {
	t.Helper()
	s := Stored(t, dir, sub)
	if err := s.Put(r); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// RemoveRecord removes a record of a run folder.
func RemoveRecord(t *testing.T, dir, sub, key string) {
	t.Helper()
	s := Stored(t, dir, sub)
	s.Drop(key)
	if err := s.Compact(nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// DamageRecord flips a bit of a text in the logs of a run folder.
func DamageRecord(t *testing.T, dir, sub, text string) {
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
