// Package video makes samples of moving pictures: small patches that change from frame to frame as
// the scene moves.
//
// It is the natural video test of Goodfellow et al. (2009, section 6). Frames are reduced to 320 x
// 180 and whitened by a band-pass filter, their contrast is scaled by a factor that varies smoothly
// over time, and a sample is a patch of a frame. The samples at one place of a scene are a
// trajectory,
//
//	tau(x, gamma) = the patch at the place of x, gamma frames later,  gamma = -5..5,
//
// and all samples together are P(x), uniform over places and frames. Scenes are kept apart: each
// file is at least one, and within a file a new one begins where the image changes at once (see
// Cuts).
//
//	src, err := video.Open(ctx, video.Options{Paths: []string{"bikes.mp4"}, Patches: video.Patches{Size: 14, Places: 32}})
//	defer src.Close()
//	around := src.Trajectory(2000) // 11 places in src, or nil near the ends of a scene
//
// Open reads video files through the ffmpeg program, animated GIFs, and folders of frames.
// OpenCamera moves a camera over still images instead: sideways, turning, or around them. Every
// frame is decoded once, in order; patches are kept in a temporary file, so memory does not grow
// with the length of a video.
package video
