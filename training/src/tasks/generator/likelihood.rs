//! Likelihood of latents: by the mixture that a prior computes for each frame, and by two models to
//! compare it with.

use std::f64::consts::PI;

use tch::{Kind, Tensor};

/// Least deviation of the compared models, that of a prior's Gaussians.
const MIN_DEVIATION: f64 = 0.05;
/// Steps of expectation and maximisation.
const FIT_STEPS: usize = 40;
/// Most frames that a mixture is fitted to.
const FIT_FRAMES: i64 = 50_000;
/// Frames among which the first means are sought.
const CANDIDATES: i64 = 1_000;

/// Mixture of Gaussians with diagonal covariances for each frame.
pub struct Mixture {
    /// Logits of the components, `[batch, component, frame]`.
    pub logits: Tensor,
    /// Means, `[batch, component · channel, frame]`.
    pub means: Tensor,
    /// Standard deviations of the same shape.
    pub scales: Tensor,
}

impl Mixture {
    /// Returns the negative logarithm of the density at `values [batch, channel, frame]`, nats,
    /// `[batch, frame]`.
    pub fn nats(&self, values: &Tensor) -> Tensor {
        let (batch, components, frames) = self.logits.size3().expect("[batch, component, frame]");
        let channels = values.size()[1];
        let apart = |x: &Tensor| {
            x.to_kind(Kind::Float)
                .reshape([batch, components, channels, frames])
        };
        let (means, scales) = (apart(&self.means), apart(&self.scales));
        let distance = ((values.unsqueeze(1) - means) / &scales).square() * 0.5 + scales.log();
        let gaussian = -distance.sum_dim_intlist([2_i64].as_slice(), false, Kind::Float)
            - gaussian_constant(channels);
        let weighted = self.logits.to_kind(Kind::Float).log_softmax(1, Kind::Float) + gaussian;
        -weighted.logsumexp([1_i64].as_slice(), false)
    }
}

/// Returns the logarithm of the normalisation of a Gaussian of deviation 1.
fn gaussian_constant(channels: i64) -> f64 {
    0.5 * channels as f64 * (2.0 * PI).ln()
}

/// Returns the mean nats of `validation [channel, frame]` by a linear prediction from the frame
/// before with Gaussian errors, fitted to `training`: an autoregressive model of order 1.
#[must_use]
pub fn linear_nats(training: &Tensor, validation: &Tensor) -> f64 {
    let pairs = |values: &Tensor| {
        let frames = values.size()[1] - 1;
        let before = values.narrow(1, 0, frames).to_kind(Kind::Double);
        let ones = Tensor::ones([1, frames], (Kind::Double, values.device()));
        (
            Tensor::cat(&[before, ones], 0),
            values.narrow(1, 1, frames).to_kind(Kind::Double),
        )
    };
    let (before, after) = pairs(training);
    let channels = after.size()[0];
    let identity = |size: i64| Tensor::eye(size, (Kind::Double, after.device()));
    let frames = after.size()[1] as f64;
    // A ridge, since latents that never vary make the matrix singular.
    let gram = before.matmul(&before.transpose(0, 1)) + identity(channels + 1) * (1e-6 * frames);
    let weights =
        Tensor::linalg_solve(&gram, &before.matmul(&after.transpose(0, 1)), true).transpose(0, 1);
    let error = &after - weights.matmul(&before);
    let covariance =
        error.matmul(&error.transpose(0, 1)) / frames + identity(channels) * MIN_DEVIATION.powi(2);

    let (before, after) = pairs(validation);
    let error = after - weights.matmul(&before);
    let distance = (Tensor::linalg_solve(&covariance, &error, true) * &error).sum(Kind::Double)
        / error.size()[1] as f64;
    let determinant = covariance.slogdet().1;
    0.5 * (distance + determinant).double_value(&[]) + gaussian_constant(channels)
}

/// Returns the mean nats of `validation [channel, frame]` by a mixture of Gaussians that knows
/// nothing of the frames before, fitted to `training` by expectation and maximisation (Dempster,
/// Laird & Rubin, 1977).
#[must_use]
pub fn memoryless_nats(training: &Tensor, validation: &Tensor, components: usize) -> f64 {
    let every = (training.size()[1] / FIT_FRAMES).max(1);
    let frames = training
        .slice(1, 0, None::<i64>, every)
        .to_kind(Kind::Double);
    let (channels, count) = (frames.size()[0], frames.size()[1]);
    let components = components as i64;
    let options = (Kind::Double, frames.device());
    let mut means = distant(
        &frames.slice(1, 0, None::<i64>, (count / CANDIDATES).max(1)),
        components,
    );
    let mut scales = frames
        .std_dim(1, false, true)
        .clamp_min(MIN_DEVIATION)
        .expand([channels, components], false)
        .copy();
    let mut logits = Tensor::zeros([components], options);
    // Logarithms of the weighted densities, `[component, frame]`.
    let joint = |frames: &Tensor, logits: &Tensor, means: &Tensor, scales: &Tensor| {
        let precisions = scales.square().reciprocal();
        let squares = precisions.transpose(0, 1).matmul(&frames.square())
            - (means * &precisions).transpose(0, 1).matmul(frames) * 2.0;
        let constant = (means.square() * &precisions + scales.log() * 2.0).sum_dim_intlist(
            [0_i64].as_slice(),
            false,
            Kind::Double,
        );
        let weight =
            logits.log_softmax(0, Kind::Double) - constant * 0.5 - gaussian_constant(channels);
        squares * -0.5 + weight.unsqueeze(1)
    };
    for _ in 0..FIT_STEPS {
        let shares = joint(&frames, &logits, &means, &scales).softmax(0, Kind::Double);
        let counts = shares
            .sum_dim_intlist([1_i64].as_slice(), false, Kind::Double)
            .clamp_min(1e-3);
        let mean = |values: &Tensor| values.matmul(&shares.transpose(0, 1)) / &counts;
        means = mean(&frames);
        let variances = mean(&frames.square()) - means.square();
        scales = variances.clamp_min(MIN_DEVIATION.powi(2)).sqrt();
        logits = counts.log();
    }
    let likelihoods = joint(&validation.to_kind(Kind::Double), &logits, &means, &scales);
    -likelihoods
        .logsumexp([0_i64].as_slice(), false)
        .mean(Kind::Double)
        .double_value(&[])
}

/// Selects columns of `values [channel, column]`, each the one that is farthest from those before.
fn distant(values: &Tensor, count: i64) -> Tensor {
    let column = |index: i64| values.narrow(1, index, 1);
    let distances = |from: &Tensor| {
        (values - from)
            .square()
            .sum_dim_intlist([0_i64].as_slice(), false, Kind::Double)
    };
    let mut chosen = vec![column(0)];
    let mut nearest = distances(&chosen[0]);
    while (chosen.len() as i64) < count {
        let next = column(nearest.argmax(0, false).int64_value(&[]));
        nearest = nearest.minimum(&distances(&next));
        chosen.push(next);
    }
    Tensor::cat(&chosen, 1)
}
