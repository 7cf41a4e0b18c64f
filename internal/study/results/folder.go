package results

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/pictures"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/store"
)

// A Folder is a run folder. Its methods take paths relative to it, unless stated otherwise.
type Folder struct {
	dir    string
	cells  *store.Store // the records of finished cells, by key
	states *store.Store // the states of unfinished cells; see taskKey
}

// open does not read the stores: see load.
func open(dir string) Folder { return openFor(dir, store.Options{}, store.Options{}) }

func openFor(dir string, cells, states store.Options) Folder {
	cells.Permanent = true
	return Folder{dir, store.New(filepath.Join(dir, "cells"), cells), store.New(filepath.Join(dir, "states"), states)}
}

// ownLogs returns the folder as a run with the given options uses it. Names of logs begin with the
// model, if the run is of one, and for states the shard: 3of16 or all. A run reads the logs of its
// model and shard, and those of all.
func (f Folder) ownLogs(o plan.Options) Folder {
	model, reads := modelLogs(o)
	shard := o.Shard.String()
	return openFor(f.dir, store.Options{Verify: true, Name: model, Reads: reads},
		store.Options{Verify: true, Name: strings.TrimPrefix(model+"."+shard, "."), Reads: func(name string) bool {
			return name == "" || name == shard || reads(strings.TrimSuffix(name, shard)) && strings.HasSuffix(name, "."+shard)
		}})
}

// modelLogs returns the prefix of the names of logs, and which of them are read, without the shard.
func modelLogs(o plan.Options) (model string, reads func(name string) bool) {
	if len(o.Only) == 1 {
		model = fmt.Sprintf("%08x", checksumOf([]byte(o.Only[0])))
	}
	return model, func(name string) bool { return model == "" || name == "" || strings.TrimSuffix(name, ".") == model }
}

// readAll lets load read the logs of all models and shards from now on.
func (f Folder) readAll() {
	f.cells.Read(nil)
	f.states.Read(nil)
}

func (f Folder) readShards(o plan.Options) {
	_, reads := modelLogs(o)
	f.states.Read(func(name string) bool { return reads(name[:strings.LastIndexByte(name, '.')+1]) })
}

// load reads the stores, or what was added since.
func (f Folder) load() error {
	if f.isOld() {
		return fmt.Errorf("%s is a run folder of an earlier version of noether, which this one does not read: choose another folder", f.dir)
	}
	return errors.Join(f.cells.Refresh(), f.states.Refresh())
}

func (f Folder) close() error { return errors.Join(f.cells.Close(), f.states.Close()) }

// isOld reports whether the folder has the form that it had before there were logs.
func (f Folder) isOld() bool {
	for sub, name := range map[string]*regexp.Regexp{"cells": oldCell, "states": oldState} {
		entries, _ := os.ReadDir(f.Path(sub))
		if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return name.MatchString(e.Name()) }) {
			return true
		}
	}
	return false
}

var oldCell, oldState = regexp.MustCompile(`^[0-9a-f]{24}\.json$`), regexp.MustCompile(`^[0-9a-f]{24}\.\w+\.bin$`)

// Create makes the folder and checks that it can be written. What has the name of a run's file or
// subfolder but is none is moved into the subfolder aside, with a warning by warnf.
func Create(dir string, warnf func(format string, args ...any)) (Folder, error) {
	f := open(dir)
	for _, o := range f.obstacles() {
		where, err := f.moveAside(o.path)
		if err != nil {
			return f, fmt.Errorf("%s: %s: %w", f.Path(o.path), o.why, err)
		}
		warnf("%s: %s; it was %s", f.Path(o.path), o.why, where)
	}
	for _, sub := range []string{"cells", "states"} {
		if err := filesys.MkdirAll(filepath.Join(dir, sub), 0o777); err != nil {
			return f, fmt.Errorf("creating the run folder: %w", err)
		}
	}
	now, err := atomicfile.Clock(filepath.Join(dir, "cells"))
	if err != nil {
		return f, fmt.Errorf("the run folder cannot be written: %w", err)
	}
	for _, file := range f.staleFiles(now) {
		filesys.Remove(f.Path(file))
	}
	return f, nil
}

// writtenFolders are the subfolders in which a run writes files; "" is the folder itself.
var writtenFolders = append([]string{"", "cells", "states", "failures"}, pictureFolders...)

type obstacle struct{ path, why string } // the path is relative to the run folder

// obstacles returns the obstacles in the folder. A symbolic link is judged by its target.
func (f Folder) obstacles() []obstacle {
	var out []obstacle
	// "pictures" is the parent of the folders of contact sheets.
	for _, sub := range append([]string{"pictures"}, writtenFolders[1:]...) {
		if mode, ok := f.mode(sub); ok && !mode.IsDir() {
			out = append(out, obstacle{sub, "it is not a folder"})
		}
	}
	for sub, matches := range isRunFile {
		entries, _ := filesys.ReadDir(f.Path(sub))
		for _, e := range entries {
			if e.Type().IsRegular() || !matches(e.Name()) {
				continue
			}
			file := filepath.Join(sub, e.Name())
			if mode, ok := f.mode(file); ok && !mode.IsRegular() {
				out = append(out, obstacle{file, "it is not a regular file"})
			}
		}
	}
	slices.SortFunc(out, func(a, b obstacle) int { return strings.Compare(a.path, b.path) })
	return out
}

// mode follows symbolic links and returns false if there is no file.
func (f Folder) mode(file string) (fs.FileMode, bool) {
	info, err := os.Stat(f.Path(file))
	switch {
	case err == nil:
		return info.Mode(), true
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return 0, false
	}
	return fs.ModeIrregular, true // such as a link to itself
}

// isRunFile reports for each subfolder whether a run may write a file of that name in it.
var isRunFile = map[string]func(name string) bool{
	"": func(name string) bool {
		return slices.Contains(tables, name) || slices.Contains([]string{"run.json", "study.yaml", "report.html", "verdict.json", pictures.Archive}, name)
	},
	"cells":            store.IsLog,
	"states":           store.IsLog,
	"failures":         failName.MatchString,
	viewSheetFolder:    isSheet,
	sampleSheetFolder:  isSheet,
	mapSheetFolder:     isSheet,
	mistakeSheetFolder: isSheet,
	modelImageFolder:   isSheet,
}

// isSheet reports whether a file is a contact sheet, a recording, an image of a model, or a description.
func isSheet(name string) bool {
	return slices.Contains([]string{".png", ".jpg", ".wav", ".json"}, filepath.Ext(name))
}

// asideFolder is the subfolder to which damaged files, obstacles and files not of a run are moved.
const asideFolder = "aside"

// moveAside returns a phrase that says where the file went.
func (f Folder) moveAside(file string) (string, error) {
	to := filepath.Join(asideFolder, file)
	for i := 2; ; i++ {
		if _, err := os.Lstat(f.Path(to)); errors.Is(err, fs.ErrNotExist) {
			break
		}
		to = filepath.Join(asideFolder, fmt.Sprintf("%s.%d", file, i))
	}
	if err := filesys.MkdirAll(filepath.Dir(f.Path(to)), 0o777); err != nil {
		return "", err
	}
	err := filesys.Rename(f.Path(file), f.Path(to))
	if errors.Is(err, fs.ErrNotExist) { // another run of the study has moved it
		err = nil
	}
	return "moved to " + filepath.ToSlash(to), err
}

// staleFiles returns temporary files of killed runs. now is the time of the file system, whose
// clock may differ from this machine's.
func (f Folder) staleFiles(now time.Time) []string {
	var out []string
	folders := slices.Clone(writtenFolders)
	for _, pattern := range []string{"cluster", "cluster/*", "cluster/*/*"} { // written by noether cluster
		found, _ := fs.Glob(os.DirFS(f.dir), pattern)
		folders = append(folders, found...)
	}
	for _, sub := range folders {
		for _, file := range atomicfile.Stale(f.Path(sub), now) {
			out = append(out, filepath.Join(sub, filepath.Base(file)))
		}
	}
	return out
}

// list works, unlike a glob, if the path of the run folder has characters such as [ or *.
func (f Folder) list(sub, prefix, suffix string) ([]string, error) {
	entries, err := os.ReadDir(f.Path(sub))
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), suffix) {
			out = append(out, f.Path(sub, e.Name()))
		}
	}
	return out, err
}

// Path returns the path of a file in the folder, including that of the folder.
func (f Folder) Path(elem ...string) string {
	return filepath.Join(append([]string{f.dir}, elem...)...)
}

func (f Folder) writeText(name, text string) error {
	return f.write(name, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

func (f Folder) write(name string, fill func(w io.Writer) error) error {
	return atomicfile.WriteFunc(f.Path(name), fill)
}
