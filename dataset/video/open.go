package video

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/filestate"
)

// version changes when the same files and options give different samples.
const version = 1

// Options are the options of Open.
type Options struct {
	// Paths are video files, animated GIFs, folders of frames, or folders of any of these, read in
	// the order of their names.
	Paths []string
	// Frames is the largest number of frames that are read from each file; 0: all.
	Frames int
	// Cuts is a threshold, 0 to 1: a new scene starts where the histograms of grey values of
	// successive frames differ by more, in total variation distance; 0: 0.2. At 1 every file is one
	// scene.
	Cuts float64
	// FFmpeg is the path of the ffmpeg program, which decodes videos; "": the value of the
	// environment variable NOETHER_FFMPEG, else the one in the search path.
	FFmpeg  string `json:"-"`
	Patches        // options of the patches
}

// Open reads videos and returns their patches. The caller closes the Source. It is an error if no
// scene is long enough for a trajectory.
func Open(ctx context.Context, o Options) (*Source, error) {
	src, err := open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("opening video: %w", err)
	}
	return src, nil
}

func open(ctx context.Context, o Options) (*Source, error) {
	o.Patches = o.complete()
	o.Cuts = cmp.Or(o.Cuts, 0.2)
	switch {
	case o.Cuts < 0 || o.Cuts > 1 || math.IsNaN(o.Cuts):
		return nil, fmt.Errorf("cuts is %g: it is a fraction from 0 to 1", o.Cuts)
	case o.Frames < 0:
		return nil, fmt.Errorf("the number of frames is %d: use 0 for all, or more", o.Frames)
	case len(o.Paths) == 0:
		return nil, fmt.Errorf("no files")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	var found []entry
	for _, p := range o.Paths {
		list, err := entries(ctx, p, 0)
		if err != nil {
			return nil, err
		}
		found = append(found, list...)
	}
	var files []string
	for _, e := range found {
		list, err := e.files()
		if err != nil {
			return nil, err
		}
		files = append(files, list...)
	}
	states := make([]filestate.State, len(files))
	for i, file := range files {
		var err error
		if states[i], err = filestate.Of(file); err != nil {
			return nil, err
		}
	}
	clips := make([]clip, len(found))
	for i, e := range found {
		var err error
		if clips[i], err = e.clip(ctx, o.FFmpeg); err != nil {
			return nil, err
		}
	}
	src, err := build(ctx, o.Patches, o.Cuts, o.Frames, clips)
	if err != nil {
		return nil, err
	}
	if err = o.checkWindow(src.longestScene()); err == nil {
		o.Paths = nil
		src.fingerprint, err = fingerprint(ctx, "video", o, files)
	}
	for i := 0; i < len(files) && err == nil; i++ { // the patches are of the files that were hashed
		err = states[i].Check(files[i])
	}
	if err != nil {
		src.Close()
		return nil, err
	}
	return src, nil
}

// An entry is a video file or a folder of frames.
type entry struct {
	path   string
	frames bool
}

// files returns the files of an entry.
func (e entry) files() ([]string, error) {
	if e.frames {
		return frameFiles(e.path)
	}
	return []string{e.path}, nil
}

// videoExtensions are the extensions of video files within a folder. A file in Paths may have any
// extension.
var videoExtensions = []string{".avi", ".gif", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".ogv", ".ts", ".webm", ".y4m"}

// frameExtensions are the extensions of images in a folder of frames.
var frameExtensions = []string{".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}

// hasExtension reports whether a file name has one of the extensions, in any case.
func hasExtension(name string, list []string) bool {
	return slices.Contains(list, strings.ToLower(filepath.Ext(name)))
}

// entries lists the videos of a path, which is depth folders below one of Options.Paths. A folder
// with images is a folder of frames.
func entries(ctx context.Context, path string, depth int) ([]entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is neither a file nor a folder", path)
		}
		return []entry{{path: path}}, nil
	}
	if depth > 8 {
		return nil, fmt.Errorf("%s: folders are nested too deeply: is there a link to a parent folder?", path)
	}
	files, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(files, func(e os.DirEntry) bool { return hasExtension(e.Name(), frameExtensions) && !hidden(e.Name()) }) {
		return []entry{{path: path, frames: true}}, nil
	}
	var out []entry
	for _, e := range files {
		child := filepath.Join(path, e.Name())
		info, err := os.Stat(child)
		if err != nil {
			return nil, err
		}
		if hidden(e.Name()) || !info.IsDir() && !hasExtension(e.Name(), videoExtensions) {
			continue
		}
		list, err := entries(ctx, child, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	if len(out) == 0 && depth == 0 {
		return nil, fmt.Errorf("%s: the folder has neither videos (%s) nor frames (%s)", path, strings.Join(videoExtensions, ", "), strings.Join(frameExtensions, ", "))
	}
	return out, nil
}

func hidden(name string) bool { return strings.HasPrefix(name, ".") }

// clip returns the clip of an entry.
func (e entry) clip(ctx context.Context, ffmpeg string) (clip, error) {
	switch {
	case e.frames:
		return folderClip(ctx, e.path)
	case isGIF(e.path):
		return gifClip(e.path), nil
	}
	return videoClip(e.path, ffmpeg)
}

// fingerprint hashes the kind of data set (such as "video"), the version, the options, and the name
// and bytes of every file.
func fingerprint(ctx context.Context, kind string, options any, files []string) (string, error) {
	text, err := json.Marshal(options)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %d %s\n", kind, version, text)
	for _, file := range files {
		fileHash, err := hashFile(ctx, file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%q %s\n", filepath.Base(file), fileHash)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
