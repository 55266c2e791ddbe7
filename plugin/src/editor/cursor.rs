//! Conversion of cursor shapes.

use baseview::MouseCursor;
use egui::CursorIcon;

/// Returns the system's cursor for one of egui's.
pub fn cursor(icon: CursorIcon) -> MouseCursor {
    match icon {
        CursorIcon::Default => MouseCursor::Default,
        CursorIcon::None => MouseCursor::Hidden,
        CursorIcon::PointingHand | CursorIcon::Grab | CursorIcon::ContextMenu => MouseCursor::Hand,
        CursorIcon::Grabbing => MouseCursor::HandGrabbing,
        CursorIcon::Help => MouseCursor::Help,
        CursorIcon::Progress => MouseCursor::PtrWorking,
        CursorIcon::Wait => MouseCursor::Working,
        CursorIcon::Cell => MouseCursor::Cell,
        CursorIcon::Crosshair => MouseCursor::Crosshair,
        CursorIcon::Text => MouseCursor::Text,
        CursorIcon::VerticalText => MouseCursor::VerticalText,
        CursorIcon::Alias => MouseCursor::Alias,
        CursorIcon::Copy => MouseCursor::Copy,
        CursorIcon::Move => MouseCursor::Move,
        CursorIcon::NoDrop | CursorIcon::NotAllowed => MouseCursor::NotAllowed,
        CursorIcon::AllScroll => MouseCursor::AllScroll,
        CursorIcon::ResizeHorizontal => MouseCursor::EwResize,
        CursorIcon::ResizeVertical => MouseCursor::NsResize,
        CursorIcon::ResizeNeSw => MouseCursor::NeswResize,
        CursorIcon::ResizeNwSe => MouseCursor::NwseResize,
        CursorIcon::ResizeEast => MouseCursor::EResize,
        CursorIcon::ResizeSouthEast => MouseCursor::SeResize,
        CursorIcon::ResizeSouth => MouseCursor::SResize,
        CursorIcon::ResizeSouthWest => MouseCursor::SwResize,
        CursorIcon::ResizeWest => MouseCursor::WResize,
        CursorIcon::ResizeNorthWest => MouseCursor::NwResize,
        CursorIcon::ResizeNorth => MouseCursor::NResize,
        CursorIcon::ResizeNorthEast => MouseCursor::NeResize,
        CursorIcon::ResizeColumn => MouseCursor::ColResize,
        CursorIcon::ResizeRow => MouseCursor::RowResize,
        CursorIcon::ZoomIn => MouseCursor::ZoomIn,
        CursorIcon::ZoomOut => MouseCursor::ZoomOut,
    }
}
