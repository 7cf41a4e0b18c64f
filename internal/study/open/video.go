package open

import (
	"context"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/dataset/video"
	"github.com/noether-ml/noether/internal/study/spec"
)

// Video are the keys of patches of videos: squares at the same positions in all frames of a scene.
type Video struct {
	Files  []spec.Path `key:"files,required" short:"true" doc:"video files, animated GIFs, folders of frames, or folders of these"`
	Frames int         `key:"frames" min:"1" doc:"largest number of frames of each file; default: all"`
	Cuts   float64     `key:"cuts" default:"0.2" min:"0" max:"1" doc:"change of the grey histogram between two frames, from 0 to 1, that starts a new scene; 1: each file is one scene"`
	patchKeys
}

// Camera are the keys of patches of still images under a simulated moving camera.
type Camera struct {
	Folder spec.Path `key:"folder,required" short:"true" doc:"folder of images"`
	Motion string    `key:"motion" enum:"pan|turn|orbit|object|still" default:"pan" doc:"pan: sideways; turn: rotation about the line of sight; orbit: around the image, in perspective; object: a rendered object with the image on it turns in depth; still: no motion"`
	Frames int       `key:"frames" min:"1" default:"31" doc:"frames of each image"`
	Speed  float64   `key:"speed" min:"0" doc:"pixels (pan) or degrees (turn, orbit, object) per frame; default: 2 (pan), 4 (turn), 3 (orbit), 2 (object)"`
	Part   int       `key:"part" min:"1" default:"1" doc:"number of the part of the images, from 1"`
	Of     int       `key:"of" min:"1" default:"1" doc:"number of equal parts"`
	patchKeys
}

// Sequences are the keys of whole videos, whose frames are sequences of images.
type Sequences struct {
	Folder spec.Path `key:"folder,required" short:"true" doc:"folder of videos or animated GIFs, in a folder for each class"`
	Layout string    `key:"layout" enum:"classes|flat|synsets" doc:"a folder for each class, no classes, or file names that start with a synset; default: inferred"`
}

// Unless raw is set, frames are whitened and their contrast is normalised.
type patchKeys struct {
	Frame    []int  `key:"frame" doc:"[width, height] of the reduced frames; default: [320, 180]"`
	Patch    int    `key:"patch" default:"14" min:"1" max:"4096" doc:"side of a patch in pixels"`
	Places   int    `key:"places" default:"32" min:"1" max:"65536" doc:"number of patch positions in each scene, drawn uniformly"`
	Crop     int    `key:"crop" min:"1" doc:"side in pixels of the central square that contains all patches; default: the whole frame; for turn, orbit and object, twice the side of a patch"`
	Channels int    `key:"channels" default:"1" min:"1" max:"3" doc:"1: grey, 3: colour"`
	Raw      bool   `key:"raw" doc:"skip whitening and contrast scaling"`
	Gamma    int    `key:"gamma" default:"5" min:"1" max:"1000" doc:"a trajectory is from this number of frames before a frame to this number after it"`
	Seed     uint64 `key:"seed" default:"1" doc:"seed of the positions and the camera motion"`
}

func (k patchKeys) patches(d spec.Data, kind string) (video.Patches, error) {
	p := video.Patches{Size: k.Patch, Places: k.Places, Crop: k.Crop, Channels: k.Channels, Raw: k.Raw, Reach: k.Gamma, Seed: k.Seed}
	switch {
	case len(k.Frame) == 2:
		p.Width, p.Height = k.Frame[0], k.Frame[1]
	case k.Frame != nil:
		return p, d.At(kind, "frame").Errorf("frame is [width, height]")
	}
	return p, nil
}

func (k *Video) Open(ctx context.Context, f *Files, d spec.Data) (dataset.Source, error) {
	p, err := k.patches(d, "video")
	if err != nil {
		return nil, err
	}
	paths, err := f.findAll(ctx, d, k.Files)
	if err != nil {
		return nil, err
	}
	src, err := video.Open(ctx, video.Options{Paths: paths, Frames: k.Frames, Cuts: k.Cuts, Patches: p})
	if err != nil {
		return nil, d.At().Errorf("%w", err)
	}
	return src, nil
}

// Open implements Source.
func (k *Sequences) Open(ctx context.Context, f *Files, d spec.Data) (dataset.Source, error) {
	paths, err := f.findAll(ctx, d, []spec.Path{k.Folder})
	if err != nil {
		return nil, err
	}
	return video.OpenSequences(ctx, dataset.FolderOptions{Dir: paths[0], Layout: k.Layout})
}

func (k *Camera) Open(ctx context.Context, f *Files, d spec.Data) (dataset.Source, error) {
	p, err := k.patches(d, "camera")
	if err != nil {
		return nil, err
	}
	if k.Part > k.Of {
		return nil, d.At("camera").Errorf("part %d of %d does not exist", k.Part, k.Of)
	}
	paths, err := f.findAll(ctx, d, []spec.Path{k.Folder})
	if err != nil {
		return nil, err
	}
	folder, err := dataset.OpenFolder(ctx, dataset.FolderOptions{Dir: paths[0]})
	if err != nil {
		return nil, err
	}
	images := dataset.Source(folder)
	if k.Of > 1 {
		from, to := float64(k.Part-1)/float64(k.Of), float64(k.Part)/float64(k.Of)
		if images, err = dataset.Split(ctx, folder, from, to, dataset.SplitOptions{Seed: 1}); err != nil {
			return nil, err
		}
	}
	src, err := video.OpenCamera(ctx, video.CameraOptions{Images: images, Motion: k.Motion, Frames: k.Frames, Speed: k.Speed, Patches: p})
	if err != nil {
		return nil, d.At().Errorf("%w", err)
	}
	return src, nil
}
