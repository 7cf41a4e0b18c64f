package spec

import (
	"context"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/dataset/video"
)

// videoKeys are patches of videos.
type videoKeys struct {
	Files  []Path  `key:"files,required" short:"true" doc:"video files, animated GIFs, folders of frames, or folders of these"`
	Frames int     `key:"frames" min:"1" doc:"at most so many frames of each file; all where not given"`
	Cuts   float64 `key:"cuts" default:"0.2" min:"0" max:"1" doc:"a scene ends where so large a share of the pixels takes another grey from a frame to the next; 1: each file is one scene"`
	patchKeys
}

// cameraKeys are patches of still images under a moving camera.
type cameraKeys struct {
	Folder Path    `key:"folder,required" short:"true" doc:"folder of images"`
	Motion string  `key:"motion" enum:"pan|turn|orbit|still" default:"pan" doc:"sideways; about the line of sight; around the image, in perspective; not at all"`
	Frames int     `key:"frames" min:"1" default:"31" doc:"frames of each image"`
	Speed  float64 `key:"speed" min:"0" doc:"pixels (pan) or degrees (turn, orbit) a frame; 2, 4 and 3 where not given"`
	Part   int     `key:"part" min:"1" default:"1" doc:"which part of the images, from 1"`
	Of     int     `key:"of" min:"1" default:"1" doc:"of so many equal parts"`
	patchKeys
}

// patchKeys say what patches are cut out of frames.
type patchKeys struct {
	Frame    []int  `key:"frame" doc:"[width, height] that frames are reduced to; [320, 180] where not given"`
	Patch    int    `key:"patch" default:"14" min:"1" max:"4096" doc:"side of a patch in pixels"`
	Places   int    `key:"places" default:"32" min:"1" max:"65536" doc:"places of patches in each scene, drawn uniformly"`
	Crop     int    `key:"crop" min:"1" doc:"patches lie within the square of so many pixels in the middle of the frame; anywhere where not given, and in two patches' width for turn and orbit"`
	Channels int    `key:"channels" default:"1" min:"1" max:"3" doc:"1: grey, 3: colour"`
	Raw      bool   `key:"raw" doc:"frames are not whitened, nor is their contrast scaled"`
	Gamma    int    `key:"gamma" default:"5" min:"1" max:"1000" doc:"trajectories reach from so many frames before to so many after"`
	Seed     uint64 `key:"seed" default:"1" doc:"of the places, and of the camera's ways"`
}

// patches converts the keys to video.Patches.
func (k patchKeys) patches(d Data, kind string) (video.Patches, error) {
	p := video.Patches{Size: k.Patch, Places: k.Places, Crop: k.Crop, Channels: k.Channels, Raw: k.Raw, Reach: k.Gamma, Seed: k.Seed}
	switch {
	case len(k.Frame) == 2:
		p.Width, p.Height = k.Frame[0], k.Frame[1]
	case k.Frame != nil:
		return p, d.node.Get(kind).Get("frame").Errorf("frame is [width, height]")
	}
	return p, nil
}

func (k *videoKeys) open(ctx context.Context, s *Study, d Data) (dataset.Source, error) {
	p, err := k.patches(d, "video")
	if err != nil {
		return nil, err
	}
	paths, err := s.findAll(ctx, d, k.Files)
	if err != nil {
		return nil, err
	}
	src, err := video.Open(ctx, video.Options{Paths: paths, Frames: k.Frames, Cuts: k.Cuts, Patches: p})
	if err != nil {
		return nil, d.node.Errorf("%w", err)
	}
	return src, nil
}

func (k *cameraKeys) open(ctx context.Context, s *Study, d Data) (dataset.Source, error) {
	p, err := k.patches(d, "camera")
	if err != nil {
		return nil, err
	}
	if k.Part > k.Of {
		return nil, d.node.Get("camera").Errorf("part %d of %d does not exist", k.Part, k.Of)
	}
	paths, err := s.findAll(ctx, d, []Path{k.Folder})
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
		return nil, d.node.Errorf("%w", err)
	}
	return src, nil
}
