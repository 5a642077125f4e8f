//! The kinds of CO-RE relocations.

use crate::error::LoadCause;

/// `enum bpf_core_relo_kind` of the UAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    FieldByteOffset,
    FieldByteSize,
    FieldExists,
    FieldSigned,
    FieldLshiftU64,
    FieldRshiftU64,
    TypeIdLocal,
    TypeIdTarget,
    TypeExists,
    TypeSize,
    EnumvalExists,
    EnumvalValue,
    TypeMatches,
}

impl Question {
    pub(super) fn new(kind: u32) -> Result<Self, LoadCause> {
        Ok(match kind {
            0 => Self::FieldByteOffset,
            1 => Self::FieldByteSize,
            2 => Self::FieldExists,
            3 => Self::FieldSigned,
            4 => Self::FieldLshiftU64,
            5 => Self::FieldRshiftU64,
            6 => Self::TypeIdLocal,
            7 => Self::TypeIdTarget,
            8 => Self::TypeExists,
            9 => Self::TypeSize,
            10 => Self::EnumvalExists,
            11 => Self::EnumvalValue,
            12 => Self::TypeMatches,
            _ => return Err(LoadCause::Unsupported(format!("CO-RE relocation of kind {kind}"))),
        })
    }

    pub(super) fn is_about_field(self) -> bool {
        use Question as Q;
        matches!(
            self,
            Q::FieldByteOffset
                | Q::FieldByteSize
                | Q::FieldExists
                | Q::FieldSigned
                | Q::FieldLshiftU64
                | Q::FieldRshiftU64
        )
    }

    pub(super) fn is_about_constant(self) -> bool {
        matches!(self, Self::EnumvalExists | Self::EnumvalValue)
    }
}
