// Package video provides samples of videos: patches, small squares cut out of their frames, and whole
// videos as sequences of frames (OpenSequences).
//
// The patches are for the natural video test of Goodfellow et al. (2009, section 6). Frames are reduced
// to 320 x 180 pixels and whitened with a band-pass filter, which gives the frequencies that it
// passes about the same power in natural images. Their contrast is normalised by a factor that
// varies smoothly over time. A sample is a patch of a frame. The trajectory tau of a patch x is
//
//	tau(x, gamma) = the patch at the position of x, gamma frames later,  gamma = -5..5.
//
// All samples together represent the distribution of inputs, P(x) in the paper.
//
// A scene is a sequence of frames without a cut. Each file has at least one, and within a file a
// new scene starts where the image changes abruptly (see Options.Cuts). A place is the position of
// one patch in all frames of a scene.
//
//	src, err := video.Open(ctx, video.Options{
//		Paths:   []string{"bikes.mp4"},
//		Patches: video.Patches{Size: 14, Places: 32},
//	})
//	defer src.Close()
//	trajectory := src.Trajectory(2000) // indices of 11 samples, or nil near the ends of a scene
//
// Open reads video files with the ffmpeg program, animated GIFs, and folders of frames. OpenCamera
// simulates a camera that moves over still images: sideways, in a rotation, or around them. Every
// frame is decoded once, in order. Patches are stored in a temporary file, so memory does not grow
// with the length of a video.
package video
